import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ArrayNode;
import io.netty.buffer.ByteBuf;
import io.netty.buffer.ByteBufUtil;
import io.netty.buffer.Unpooled;
import java.io.DataInputStream;
import java.io.IOException;
import java.net.Socket;
import java.net.URI;
import java.util.Base64;
import java.util.Map;
import org.apache.pulsar.common.api.proto.BaseCommand;
import org.apache.pulsar.common.api.proto.CommandLookupTopicResponse;
import org.apache.pulsar.common.api.proto.CompressionType;
import org.apache.pulsar.common.api.proto.MessageIdData;
import org.apache.pulsar.common.api.proto.MessageMetadata;
import org.apache.pulsar.common.protocol.ByteBufPair;
import org.apache.pulsar.common.protocol.Commands;

/** Sends one entry whose metadata says that it is a chunk, over a connection of its own. */
final class RawChunk {
    static JsonNode send(String serviceUrl, JsonNode request) throws Exception {
        MessageMetadata metadata = new MessageMetadata()
                .setProducerName(request.get("producer").asText())
                .setSequenceId(request.get("sequence_id").asLong())
                .setPublishTime(System.currentTimeMillis())
                .setUuid(request.get("uuid").asText())
                .setChunkId(request.get("chunk_id").asInt())
                .setNumChunksFromMsg(request.get("num_chunks").asInt())
                .setTotalChunkMsgSize(request.get("total_size").asInt());
        if (!request.get("compression").asText().equals("NONE")) {
            metadata.setCompression(CompressionType.valueOf(request.get("compression").asText()));
        }
        if (Server.has(request, "uncompressed_size")) {
            metadata.setUncompressedSize(request.get("uncompressed_size").asInt());
        }
        if (Server.has(request, "key")) {
            metadata.setPartitionKey(request.get("key").asText());
        }
        if (Server.has(request, "properties")) {
            request.get("properties").fields().forEachRemaining(one ->
                    metadata.addProperty().setKey(one.getKey()).setValue(one.getValue().asText()));
        }
        byte[] payload = Base64.getDecoder().decode(request.get("payload").asText());
        if (Server.has(request, "encryption")) {
            payload = Keys.encrypt(request.get("encryption"), metadata, payload);
        }
        URI at = URI.create(serviceUrl);
        try (Socket socket = new Socket(at.getHost(), at.getPort())) {
            socket.setSoTimeout(30_000);
            return new RawChunk(socket).send(request.get("topic").asText(), metadata, payload);
        }
    }

    private final Socket socket;
    private final DataInputStream input;

    private RawChunk(Socket socket) throws IOException {
        this.socket = socket;
        input = new DataInputStream(socket.getInputStream());
    }

    private ArrayNode send(String topic, MessageMetadata metadata, byte[] bytes) throws Exception {
        write(Commands.newConnect("none", "", "oracle"));
        expect(BaseCommand.Type.CONNECTED);
        lookUp(topic);
        write(Commands.newProducer(topic, 1, 2, metadata.getProducerName(), false, Map.of(), false));
        expect(BaseCommand.Type.PRODUCER_SUCCESS);
        ByteBuf payload = Unpooled.wrappedBuffer(bytes);
        write(ByteBufPair.coalesce(Commands.newSend(
                1, metadata.getSequenceId(), 1, Commands.ChecksumType.Crc32c, metadata, payload)));
        MessageIdData id = expect(BaseCommand.Type.SEND_RECEIPT).getSendReceipt().getMessageId();
        ArrayNode found = Server.array().add(id.getLedgerId()).add(id.getEntryId()).add(-1).add(-1);
        write(Commands.newCloseProducer(1, 3));
        expect(BaseCommand.Type.SUCCESS);
        return found;
    }

    /** Makes the broker own the topic, which may be unloaded. */
    private void lookUp(String topic) throws Exception {
        String last = "";
        for (int attempt = 0; attempt < 100; attempt++) {
            write(Commands.newLookup(topic, true, 1));
            CommandLookupTopicResponse answer =
                    expect(BaseCommand.Type.LOOKUP_RESPONSE).getLookupTopicResponse();
            if (answer.getResponse() == CommandLookupTopicResponse.LookupType.Connect) {
                return;
            }
            last = answer.getResponse() + " " + (answer.hasMessage() ? answer.getMessage() : "");
            Thread.sleep(100);
        }
        throw new IOException("lookup of " + topic + ": " + last);
    }

    private void write(ByteBuf frame) throws IOException {
        socket.getOutputStream().write(ByteBufUtil.getBytes(frame));
    }

    private BaseCommand expect(BaseCommand.Type wanted) throws IOException {
        while (true) {
            byte[] frame = new byte[input.readInt()];
            input.readFully(frame);
            ByteBuf buffer = Unpooled.wrappedBuffer(frame);
            BaseCommand command = new BaseCommand();
            command.parseFrom(buffer, buffer.readInt());
            if (command.getType() == wanted) {
                return command;
            } else if (command.getType() == BaseCommand.Type.PING) {
                write(Commands.newPong());
            } else if (command.getType() == BaseCommand.Type.ERROR) {
                throw new IOException(command.getError().getMessage());
            } else if (command.getType() == BaseCommand.Type.SEND_ERROR) {
                throw new IOException(command.getSendError().getMessage());
            } else if (command.getType() == BaseCommand.Type.CLOSE_PRODUCER) {
                throw new IOException("the broker closed the producer");
            }
        }
    }
}
