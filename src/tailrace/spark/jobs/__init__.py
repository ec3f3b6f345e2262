"""Work over whole logs as Spark jobs. One module per job, on the frame of job.py."""
