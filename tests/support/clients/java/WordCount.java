import java.util.Arrays;
import java.util.Properties;
import org.apache.kafka.common.serialization.Serdes;
import org.apache.kafka.streams.KafkaStreams;
import org.apache.kafka.streams.StreamsBuilder;
import org.apache.kafka.streams.StreamsConfig;
import org.apache.kafka.streams.errors.StreamsUncaughtExceptionHandler.StreamThreadExceptionResponse;
import org.apache.kafka.streams.kstream.Consumed;
import org.apache.kafka.streams.kstream.Grouped;
import org.apache.kafka.streams.kstream.Materialized;
import org.apache.kafka.streams.kstream.Produced;

/**
 * Counts words: INPUT OUTPUT KEY=VALUE… are the topics and the application's settings. Says on standard output which
 * state it is in; ends when its standard input does. Every count is written, none is skipped by a cache, so each word's
 * counts in the output are 1, 2, 3, … if everything was done exactly once.
 */
public final class WordCount {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        settings.put(StreamsConfig.DEFAULT_KEY_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.DEFAULT_VALUE_SERDE_CLASS_CONFIG, Serdes.StringSerde.class);
        settings.put(StreamsConfig.STATESTORE_CACHE_MAX_BYTES_CONFIG, 0);
        for (String setting : Arrays.asList(arguments).subList(2, arguments.length)) {
            String[] parts = setting.split("=", 2);
            settings.put(parts[0], parts[1]);
        }
        StreamsBuilder builder = new StreamsBuilder();
        builder.stream(arguments[0], Consumed.with(Serdes.String(), Serdes.String()))
            .flatMapValues(line -> Arrays.asList(line.split(" ")))
            .groupBy((key, word) -> word, Grouped.with("words", Serdes.String(), Serdes.String()))
            .count(Materialized.as("counts"))
            .toStream()
            .mapValues(count -> Long.toString(count))
            .to(arguments[1], Produced.with(Serdes.String(), Serdes.String()));
        try (KafkaStreams streams = new KafkaStreams(builder.build(settings), settings)) {
            streams.setStateListener((now, before) -> say("state " + now));
            streams.setUncaughtExceptionHandler(failure -> {
                say("failure " + failure);
                failure.printStackTrace();
                return StreamThreadExceptionResponse.REPLACE_THREAD;
            });
            streams.start();
            while (System.in.read() >= 0) {
                // whoever started this one has not closed the pipe yet
            }
        }
        say("closed");
    }

    private static synchronized void say(String line) {
        System.out.println(line);
        System.out.flush();
    }
}
