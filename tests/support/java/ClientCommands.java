import java.util.Map;

final class ClientCommands {
    void register(Map<String, LogOracle.Command> commands) { }
}
