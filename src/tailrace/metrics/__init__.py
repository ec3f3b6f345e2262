"""What is measured, and how it is told: histograms, families of samples, the text that Prometheus reads."""
