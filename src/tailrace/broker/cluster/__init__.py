"""What a broker of a cluster does with its controllers and the other brokers."""
