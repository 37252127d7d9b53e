import java.net.InetSocketAddress;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.TSetIpAddressProcessor;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.server.TThreadPoolServer;
import org.apache.thrift.transport.TServerSocket;
import org.apache.thrift.transport.TTransportFactory;

/** Hive's metastore as Spark's jars have it, on loopback alone: its own main listens everywhere. */
public final class HiveMetastore {
  /** Arguments: a directory for its database and its warehouse. Prints the port. */
  public static void main(String[] arguments) throws Exception {
    HiveConf conf = new HiveConf();
    conf.set(
        "javax.jdo.option.ConnectionURL",
        "jdbc:derby:;databaseName=" + arguments[0] + "/database;create=true");
    conf.set("datanucleus.schema.autoCreateAll", "true");
    conf.set("hive.metastore.schema.verification", "false");
    conf.set("datanucleus.connectionPoolingType", "NONE");
    conf.set("hive.metastore.warehouse.dir", arguments[0] + "/warehouse");
    HiveMetaStore.HMSHandler handler = new HiveMetaStore.HMSHandler("tests", conf, false);
    TxnDbUtil.prepDb(conf); // the tables of locks, by which Iceberg commits
    TServerSocket socket = new TServerSocket(new InetSocketAddress("127.0.0.1", 0));
    TThreadPoolServer server =
        new TThreadPoolServer(
            new TThreadPoolServer.Args(socket)
                .processor(
                    new TSetIpAddressProcessor<>(
                        HiveMetaStore.newRetryingHMSHandler(handler, conf, true)))
                .transportFactory(new TTransportFactory())
                .protocolFactory(new TBinaryProtocol.Factory()));
    System.out.println("port " + socket.getServerSocket().getLocalPort());
    server.serve();
  }
}
