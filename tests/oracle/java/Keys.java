import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.StringWriter;
import java.security.KeyPair;
import java.security.KeyPairGenerator;
import java.security.spec.ECGenParameterSpec;
import java.util.Map;
import org.apache.pulsar.client.api.CryptoKeyReader;
import org.apache.pulsar.client.api.EncryptionKeyInfo;
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

    private static String pem(Object key) throws IOException {
        StringWriter text = new StringWriter();
        try (JcaPEMWriter writer = new JcaPEMWriter(text)) {
            writer.writeObject(key);
        }
        return text.toString();
    }
}
