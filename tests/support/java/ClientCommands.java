import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AdminClientConfig;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.Future;

/** Commands of the Java client against a running broker, under the real clock. */
final class ClientCommands {
    /** The client of one cluster: an admin, and the producers whose transactions were left open. */
    private static final class Client {
        final String bootstrap;
        final Admin admin;
        final List<KafkaProducer<byte[], byte[]>> open = new ArrayList<>();

        Client(String bootstrap) {
            this.bootstrap = bootstrap;
            this.admin = Admin.create(Map.of(AdminClientConfig.BOOTSTRAP_SERVERS_CONFIG, bootstrap));
        }
    }

    private final Map<Integer, Client> clients = new HashMap<>();
    private int connected = 0;

    void register(Map<String, LogOracle.Command> commands) {
        commands.put("client_connect", this::connect);
        commands.put("client_close", this::close);
        commands.put("client_create_topic", this::createTopic);
        commands.put("client_delete_topic", args -> client(args).admin.deleteTopics(List.of(args.text("topic"))).all().get());
        commands.put("client_alter_topic", this::alterTopic);
        commands.put("client_delete_records", this::deleteRecords);
        commands.put("client_commit", this::commit);
        commands.put("client_produce", this::produce);
        commands.put("client_transaction", this::transaction);
        commands.put("client_consume", this::consume);
        commands.put("client_offset_for_time", this::offsetForTime);
        commands.put("client_bounds", this::bounds);
    }

    private Client client(Args args) {
        return clients.get(args.integer("client"));
    }

    private static TopicPartition partition(Args args) {
        return new TopicPartition(args.text("topic"), args.integer("partition"));
    }

    private Object connect(Args args) {
        clients.put(++connected, new Client(args.text("bootstrap")));
        return connected;
    }

    private Object close(Args args) {
        Client client = clients.remove(args.integer("client"));
        for (KafkaProducer<byte[], byte[]> producer : client.open)
            producer.close(Duration.ZERO); // at once: an open transaction stays open
        client.admin.close(Duration.ZERO);
        return null;
    }

    private Object createTopic(Args args) throws Exception {
        NewTopic topic = new NewTopic(args.text("topic"), args.integer("partitions", 1), (short) 1).configs(args.textMap("config"));
        return client(args).admin.createTopics(List.of(topic)).topicId(args.text("topic")).get().toString();
    }

    private Object alterTopic(Args args) throws Exception {
        List<AlterConfigOp> changes = new ArrayList<>();
        args.textMap("config").forEach((key, value) ->
            changes.add(new AlterConfigOp(new ConfigEntry(key, value), AlterConfigOp.OpType.SET)));
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, args.text("topic"));
        return client(args).admin.incrementalAlterConfigs(Map.of(resource, changes)).all().get();
    }

    private Object deleteRecords(Args args) throws Exception {
        TopicPartition partition = partition(args);
        return client(args).admin.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(args.number("before_offset"))))
            .lowWatermarks().get(partition).get().lowWatermark();
    }

    private Object commit(Args args) throws Exception {
        OffsetAndMetadata offset =
            new OffsetAndMetadata(args.number("offset"), Optional.empty(), args.text("metadata", ""));
        return client(args).admin.alterConsumerGroupOffsets(args.text("group"), Map.of(partition(args), offset)).all().get();
    }

    private KafkaProducer<byte[], byte[]> producer(Args args) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", client(args).bootstrap);
        config.put("enable.idempotence", "false");
        config.put("acks", "all");
        config.put("linger.ms", "60000"); // the records of one call leave together, at its flush
        config.put("batch.size", "1000000");
        config.putAll(args.textMap("config"));
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static List<Long> send(KafkaProducer<byte[], byte[]> producer, Args args) throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        for (Args record : args.list("records")) {
            List<Header> headers = new ArrayList<>();
            for (Args header : record.list("headers"))
                headers.add(new RecordHeader(new String(header.bytes("key"), StandardCharsets.UTF_8), header.bytes("value")));
            Long timestamp = record.number("timestamp", -1) < 0 ? null : record.number("timestamp");
            sent.add(producer.send(new ProducerRecord<>(
                args.text("topic"), args.integer("partition"), timestamp, record.bytes("key"), record.bytes("value"), headers)));
        }
        producer.flush();
        List<Long> offsets = new ArrayList<>();
        for (Future<RecordMetadata> metadata : sent)
            offsets.add(metadata.get().offset());
        return offsets;
    }

    private Object produce(Args args) throws Exception {
        try (KafkaProducer<byte[], byte[]> producer = producer(args)) {
            List<Object> offsets = new ArrayList<>();
            for (Args batch : args.list("batches"))
                offsets.add(send(producer, batch));
            return offsets;
        }
    }

    private Object transaction(Args args) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(args);
        client(args).open.add(producer);
        producer.initTransactions();
        producer.beginTransaction();
        List<Object> offsets = new ArrayList<>();
        for (Args batch : args.list("batches"))
            offsets.add(send(producer, batch));
        String end = args.text("end");
        if (end.equals("commit"))
            producer.commitTransaction();
        else if (end.equals("abort"))
            producer.abortTransaction();
        else if (!end.equals("open"))
            throw new IllegalArgumentException("a transaction ends with commit, abort or open, not " + end);
        if (!end.equals("open")) {
            client(args).open.remove(producer);
            producer.close();
        }
        return offsets;
    }

    private KafkaConsumer<byte[], byte[]> consumer(Args args) {
        Map<String, Object> config = new HashMap<>();
        config.put("bootstrap.servers", client(args).bootstrap);
        config.put("enable.auto.commit", "false");
        config.put("auto.offset.reset", "none");
        config.put("isolation.level", args.text("isolation", "read_uncommitted"));
        config.putAll(args.textMap("config"));
        return new KafkaConsumer<>(config, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private Object consume(Args args) {
        TopicPartition partition = partition(args);
        List<Object> records = new ArrayList<>();
        long deadline = System.nanoTime() + 60_000_000_000L;
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(args)) {
            consumer.assign(List.of(partition));
            long end = consumer.endOffsets(List.of(partition)).get(partition);
            if (args.has("from_offset"))
                consumer.seek(partition, args.number("from_offset"));
            else
                consumer.seekToBeginning(List.of(partition));
            while (consumer.position(partition) < end) {
                if (System.nanoTime() > deadline)
                    throw new IllegalStateException("the consumer stays at " + consumer.position(partition) + ", short of " + end);
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200)))
                    records.add(view(record));
            }
        }
        return records;
    }

    private static Object view(ConsumerRecord<byte[], byte[]> record) {
        List<Object> headers = new ArrayList<>();
        for (Header header : record.headers())
            headers.add(Json.list(header.key().getBytes(StandardCharsets.UTF_8), header.value()));
        return Json.map(
            "offset", record.offset(),
            "timestamp", record.timestamp(),
            "key", record.key(),
            "value", record.value(),
            "headers", headers);
    }

    private Object offsetForTime(Args args) {
        TopicPartition partition = partition(args);
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(args)) {
            OffsetAndTimestamp found = consumer.offsetsForTimes(Map.of(partition, args.number("timestamp"))).get(partition);
            return found == null ? null : Json.list(found.timestamp(), found.offset(), found.leaderEpoch());
        }
    }

    private Object bounds(Args args) {
        List<TopicPartition> partition = List.of(partition(args));
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(args)) {
            return Json.list(
                consumer.beginningOffsets(partition).get(partition.get(0)), consumer.endOffsets(partition).get(partition.get(0)));
        }
    }
}
