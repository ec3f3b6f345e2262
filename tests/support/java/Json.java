import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.OptionalInt;
import java.util.OptionalLong;

/** Small helpers for building answers. */
final class Json {
    /** A map from alternating names and values, in their order; optionals are unpacked. */
    static Map<String, Object> map(Object... pairs) {
        Map<String, Object> map = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2)
            map.put((String) pairs[i], plain(pairs[i + 1]));
        return map;
    }

    static List<Object> list(Object... items) {
        List<Object> list = new ArrayList<>();
        for (Object item : items)
            list.add(plain(item));
        return list;
    }

    static byte[] bytes(ByteBuffer buffer) {
        if (buffer == null)
            return null;
        ByteBuffer view = buffer.duplicate();
        byte[] bytes = new byte[view.remaining()];
        view.get(bytes);
        return bytes;
    }

    private static Object plain(Object value) {
        if (value instanceof Optional)
            return ((Optional<?>) value).orElse(null);
        if (value instanceof OptionalLong)
            return ((OptionalLong) value).isPresent() ? ((OptionalLong) value).getAsLong() : null;
        if (value instanceof OptionalInt)
            return ((OptionalInt) value).isPresent() ? ((OptionalInt) value).getAsInt() : null;
        if (value instanceof ByteBuffer)
            return bytes((ByteBuffer) value);
        return value;
    }

    private Json() { }
}
