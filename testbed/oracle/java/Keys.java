import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.StringWriter;
import java.nio.ByteBuffer;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.spec.ECGenParameterSpec;
import java.util.HashSet;
import java.util.Map;
import java.util.Set;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.EncryptionKeyInfo;
import org.apache.pulsar.client.impl.crypto.MessageCryptoBc;
import org.apache.pulsar.common.api.proto.MessageMetadata;
import org.bouncycastle.asn1.pkcs.PrivateKeyInfo;
import org.bouncycastle.jce.provider.BouncyCastleProvider;
import org.bouncycastle.openssl.jcajce.JcaPEMWriter;

/** Keys by name, as PEM text; the same for both directions. */
final class Keys implements CryptoKeyReader {
    private final transient JsonNode keys;

    Keys(JsonNode keys) {
        this.keys = keys;
    }

    @Override
    public EncryptionKeyInfo getPublicKey(String name, Map<String, String> metadata) {
        // Unknown ones are empty text, which fits no key.
        return new EncryptionKeyInfo(keys.path(name).asText().getBytes(), Map.of("of", name));
    }

    @Override
    public EncryptionKeyInfo getPrivateKey(String name, Map<String, String> metadata) {
        return getPublicKey(name, metadata);
    }

    /** A new pair as MessageCryptoBc loads it; "kind" is RSA or ECDSA. */
    static JsonNode make(JsonNode request) throws Exception {
        boolean rsa = request.get("kind").asText().equals("RSA");
        KeyPairGenerator generator =
                KeyPairGenerator.getInstance(rsa ? "RSA" : "ECDSA", new BouncyCastleProvider());
        if (rsa) {
            generator.initialize(2048);
        } else {
            generator.initialize(new ECGenParameterSpec("secp256r1"));
        }
        KeyPair pair = generator.generateKeyPair();
        ObjectNode found = Server.JSON.createObjectNode();
        found.put("public", pem(pair.getPublic()));
        return found.put("private", pem(PrivateKeyInfo.getInstance(pair.getPrivate().getEncoded())));
    }

    /** The payload of an entry, out of its ciphertext and its metadata. */
    static byte[] decrypt(JsonNode request) throws Exception {
        MessageMetadata metadata = new MessageMetadata();
        metadata.parseFrom(request.get("metadata").binaryValue());
        ByteBuffer data = ByteBuffer.wrap(request.get("data").binaryValue());
        MessageCryptoBc crypto = new MessageCryptoBc("oracle", false);
        ByteBuffer plain = ByteBuffer.allocate(crypto.getMaxOutputSize(data.remaining()));
        if (!crypto.decrypt(() -> metadata, data, plain, new Keys(request.get("keys")))) {
            throw new IllegalArgumentException("no key fits");
        }
        byte[] found = new byte[plain.remaining()];
        plain.get(found);
        return found;
    }

    /** A payload's ciphertext; the metadata is told how to decrypt it. */
    static byte[] encrypt(JsonNode keys, MessageMetadata metadata, byte[] payload) throws Exception {
        Set<String> names = new HashSet<>();
        keys.fieldNames().forEachRemaining(names::add);
        MessageCryptoBc crypto = new MessageCryptoBc("oracle", true);
        crypto.addPublicKeyCipher(names, new Keys(keys));
        ByteBuffer sealed = ByteBuffer.allocate(crypto.getMaxOutputSize(payload.length));
        crypto.encrypt(names, new Keys(keys), () -> metadata, ByteBuffer.wrap(payload), sealed);
        byte[] found = new byte[sealed.remaining()];
        sealed.get(found);
        return found;
    }

    private static String pem(Object key) throws IOException {
        StringWriter text = new StringWriter();
        try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
            writer.writeObject(key);
        }
        return text.toString();
    }
}
