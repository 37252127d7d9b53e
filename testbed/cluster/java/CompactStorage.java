import java.io.File;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import org.apache.bookkeeper.common.component.ComponentStarter;
import org.apache.bookkeeper.conf.ServerConfiguration;
import org.apache.bookkeeper.server.Main;
import org.apache.bookkeeper.server.conf.BookieConfiguration;
import org.apache.pulsar.PulsarClusterMetadataSetup;
import org.apache.zookeeper.server.ServerConfig;
import org.apache.zookeeper.server.ZooKeeperServerMain;

/**
 * ZooKeeper and bookies in one JVM, each as its own main class starts it. The JVM ends when any of
 * them ends, because a test must never run on a part of the cluster.
 *
 * <p>Arguments: ZooKeeper's settings file, the bookies' settings files, and optionally "--" followed
 * by the arguments of PulsarClusterMetadataSetup, which runs before the bookies start.
 */
public final class CompactStorage {
    private CompactStorage() {}

    public static void main(String[] arguments) throws Exception {
        List<String> all = List.of(arguments);
        int end = all.contains("--") ? all.indexOf("--") : all.size();
        try {
            startZooKeeper(all.get(0));
            if (end < all.size()) {
                PulsarClusterMetadataSetup.main(
                        all.subList(end + 1, all.size()).toArray(String[]::new));
            }
            for (String settings : all.subList(1, end)) {
                startBookie(settings);
            }
        } catch (Throwable error) {
            end("the start", error);
        }
    }

    private static void startZooKeeper(String settings) throws Exception {
        ServerConfig config = new ServerConfig();
        config.parse(settings);
        CountDownLatch started = new CountDownLatch(1);
        Thread thread = new Thread(() -> {
            Throwable cause = null;
            try {
                new ZooKeeperServerMain() {
                    @Override
                    protected void serverStarted() {
                        started.countDown();
                    }
                }.runFromConfig(config); // returns when the server has stopped
            } catch (Throwable error) {
                cause = error;
            }
            end("ZooKeeper", cause);
        }, "zookeeper");
        thread.start();
        started.await();
    }

    private static void startBookie(String settings) throws Exception {
        ServerConfiguration config = new ServerConfiguration();
        config.loadConf(new File(settings).toURI().toURL());
        ComponentStarter.startComponent(Main.buildBookieServer(new BookieConfiguration(config)))
                .whenComplete((nothing, error) -> end(settings, error));
    }

    private static void end(String what, Throwable cause) {
        System.out.println("CompactStorage ends, because " + what + " has ended: " + cause);
        if (cause != null) {
            cause.printStackTrace(System.out);
        }
        Runtime.getRuntime().halt(1);
    }
}
