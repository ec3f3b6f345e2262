import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import java.util.HashMap;
import java.util.Map;
import org.apache.kafka.common.protocol.ApiMessage;
import org.apache.kafka.common.protocol.ByteBufferAccessor;
import org.apache.kafka.common.protocol.Message;
import org.apache.kafka.common.protocol.ObjectSerializationCache;

/**
 * Answers for Kafka's own generated message classes. One question a line, one answer a line:
 *
 *   NAME VERSION BYTES JSON  ->  ok BYTES-WRITTEN-AGAIN JSON-OF-BYTES BYTES-OF-JSON
 *                            or  error WHAT
 *
 * Bytes and JSON are base64. An empty JSON stands for none: then BYTES-OF-JSON is empty too. BYTES may be "-" for
 * none; then the answer is "ok BYTES-OF-JSON".
 */
public class MessageOracle {
    static final String[] PACKAGES = {
        "org.apache.kafka.common.message", "org.apache.kafka.common.metadata",
        "org.apache.kafka.coordinator.group.generated", "org.apache.kafka.coordinator.transaction.generated",
        "org.apache.kafka.coordinator.share.generated", "org.apache.kafka.raft.generated",
        "org.apache.kafka.server.log.remote.metadata.storage.generated", "org.apache.kafka.storage.internals.generated",
        "org.apache.kafka.server.generated",
    };
    static final ObjectMapper JSON = new ObjectMapper();
    static final Map<String, Class<?>> CLASSES = new HashMap<>();

    public static void main(String[] arguments) throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        PrintStream out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line; (line = in.readLine()) != null; ) {
            String[] words = line.split(" ", -1);
            try {
                short version = Short.parseShort(words[1]);
                String answer = words[2].equals("-")
                    ? fromJson(words[0], version, decode(words[3]))
                    : answer(words[0], version, decode(words[2]), decode(words[3]));
                out.println("ok " + answer);
            } catch (Throwable error) {
                Throwable cause = error instanceof InvocationTargetException ? error.getCause() : error;
                out.println("error " + cause.toString().replace('\n', ' '));
            }
        }
        out.flush();
    }

    static String answer(String name, short version, byte[] bytes, byte[] json) throws Exception {
        Class<?> type = find(name);
        Class<?> converter = Class.forName(type.getName() + "JsonConverter");
        ApiMessage message = (ApiMessage) type.getConstructor().newInstance();
        ByteBuffer buffer = ByteBuffer.wrap(bytes);
        message.read(new ByteBufferAccessor(buffer), version);
        if (buffer.hasRemaining()) throw new IllegalArgumentException(buffer.remaining() + " bytes left over");
        Method write = converter.getMethod("write", type, short.class, boolean.class);
        JsonNode told = (JsonNode) write.invoke(null, message, version, false);
        String made = json.length > 0 ? fromJson(name, version, json) : "";
        return encode(bytes(message, version)) + " " + encode(JSON.writeValueAsBytes(told)) + " " + made;
    }

    static String fromJson(String name, short version, byte[] json) throws Exception {
        Class<?> converter = Class.forName(find(name).getName() + "JsonConverter");
        Method read = converter.getMethod("read", JsonNode.class, short.class);
        return encode(bytes((Message) read.invoke(null, JSON.readTree(json), version), version));
    }

    static byte[] bytes(Message message, short version) {
        ObjectSerializationCache cache = new ObjectSerializationCache();
        ByteBuffer buffer = ByteBuffer.allocate(message.size(cache, version));
        message.write(new ByteBufferAccessor(buffer), cache, version);
        return Arrays.copyOf(buffer.array(), buffer.position());
    }

    static Class<?> find(String name) throws ClassNotFoundException {
        Class<?> known = CLASSES.get(name);
        if (known != null) return known;
        for (String place : PACKAGES) {
            for (String suffix : new String[] {"", "Data"}) {
                try {
                    Class<?> found = Class.forName(place + "." + name + suffix);
                    CLASSES.put(name, found);
                    return found;
                } catch (ClassNotFoundException missing) {
                    continue;
                }
            }
        }
        throw new ClassNotFoundException(name);
    }

    static byte[] decode(String text) {
        return Base64.getDecoder().decode(text);
    }

    static String encode(byte[] bytes) {
        return Base64.getEncoder().encodeToString(bytes);
    }
}
