import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ObjectNode;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;

/**
 * Apache Kafka's own storage code behind a pipe.
 *
 * One JSON object per line on stdin is a command, {"op": NAME, ...}; one line on stdout answers it, either
 * {"result": ...} or {"error": {...}}. Commands run one after the other on one thread, and time stands still
 * between them unless a command moves it, so the same commands always leave the same files. The program ends
 * with its stdin.
 */
public final class LogOracle {
    static final ObjectMapper JSON = new ObjectMapper();

    /** What a command does; whatever it returns is written as JSON (byte[] as base64). */
    interface Command {
        Object run(Args args) throws Exception;
    }

    public static void main(String[] ignored) throws Exception {
        PrintStream answers = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        System.setOut(System.err); // Kafka's tools print; answers must stay alone on the pipe
        Map<String, Command> commands = new HashMap<>();
        ManualTime time = new ManualTime();
        LogCommands logs = new LogCommands(time);
        logs.register(commands);
        new RecordCommands(time).register(commands);
        new FileCommands().register(commands);
        new ClientCommands().register(commands);
        new QuotaCommands(time).register(commands);
        new AclCommands().register(commands);
        new TierCommands().register(commands);
        new RemoteLogCommands().register(commands);
        BufferedReader requests = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8), 1 << 16);
        String line;
        while ((line = requests.readLine()) != null) {
            answers.write(JSON.writeValueAsBytes(answer(commands, logs, line)));
            answers.write('\n');
            answers.flush();
        }
        Runtime.getRuntime().halt(0); // without Kafka's shutdown hooks: a log that was not closed stays so
    }

    private static Object answer(Map<String, Command> commands, LogCommands logs, String line) {
        try {
            Args args = new Args((ObjectNode) JSON.readTree(line));
            Command command = commands.get(args.text("op"));
            if (command == null)
                throw new IllegalArgumentException("no command " + args.text("op"));
            Object result = command.run(args);
            logs.runDueTasks();
            Map<String, Object> answer = new HashMap<>();
            answer.put("result", result);
            return answer;
        } catch (Throwable thrown) {
            return Map.of("error", Failure.describe(thrown));
        }
    }

    /** Collects what `work` prints to System.out. */
    static String captureOutput(Action work) throws Exception {
        PrintStream before = System.out;
        java.io.ByteArrayOutputStream captured = new java.io.ByteArrayOutputStream();
        System.setOut(new PrintStream((OutputStream) captured, true, StandardCharsets.UTF_8));
        try {
            work.run();
        } finally {
            System.out.flush();
            System.setOut(before);
        }
        return captured.toString(StandardCharsets.UTF_8);
    }

    interface Action {
        void run() throws Exception;
    }

    private LogOracle() { }
}
