import com.fasterxml.jackson.databind.JsonNode;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.function.Function;

/** The arguments of a command: required where no fallback is given, and null counts as absent. */
final class Args {
    private final JsonNode node;

    Args(JsonNode node) {
        this.node = node;
    }

    boolean has(String name) {
        return node.hasNonNull(name);
    }

    private JsonNode required(String name) {
        if (!has(name))
            throw new IllegalArgumentException("argument " + name + " is missing in " + node);
        return node.get(name);
    }

    String text(String name) {
        return required(name).asText();
    }

    String text(String name, String fallback) {
        return has(name) ? text(name) : fallback;
    }

    long number(String name) {
        return required(name).asLong();
    }

    long number(String name, long fallback) {
        return has(name) ? number(name) : fallback;
    }

    int integer(String name) {
        return Math.toIntExact(number(name));
    }

    int integer(String name, int fallback) {
        return Math.toIntExact(number(name, fallback));
    }

    double real(String name, double fallback) {
        return has(name) ? required(name).asDouble() : fallback;
    }

    boolean flag(String name, boolean fallback) {
        return has(name) ? required(name).asBoolean() : fallback;
    }

    File file(String name) {
        return new File(text(name)).getAbsoluteFile();
    }

    /** Bytes from base64; null when absent. */
    byte[] bytes(String name) throws IOException {
        return has(name) ? node.get(name).binaryValue() : null;
    }

    ByteBuffer buffer(String name) throws IOException {
        return ByteBuffer.wrap(required(name).binaryValue());
    }

    List<Args> list(String name) {
        return items(name, Args::new);
    }

    List<Long> numbers(String name) {
        return items(name, JsonNode::asLong);
    }

    List<String> texts(String name) {
        return items(name, JsonNode::asText);
    }

    Map<String, String> textMap(String name) {
        Map<String, String> map = new LinkedHashMap<>();
        if (has(name))
            node.get(name).properties().forEach(entry -> map.put(entry.getKey(), entry.getValue().asText()));
        return map;
    }

    Args inner(String name) {
        return new Args(required(name));
    }

    private <T> List<T> items(String name, Function<JsonNode, T> convert) {
        List<T> items = new ArrayList<>();
        if (has(name))
            node.get(name).forEach(item -> items.add(convert.apply(item)));
        return items;
    }
}
