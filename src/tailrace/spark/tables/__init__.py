"""Topics as tables: Parquet files that workers write, and one commit of an Iceberg or Delta table by the driver.

follow.py ─► table_export.py ─► round_plan.py ─► write_task.py (in tasks) ─► formats/

table_export.py  TableExport: adds records to a table, round by round
follow.py        Follower: keeps a table up to date until it is stopped
background_merge.py  BackgroundMerge: merges small files beside the rounds
topic_source.py  TopicSource: the topics of an export, from a cluster, from files, or from both
round_plan.py    plans a round: the offsets that come next
round_files.py   RoundFiles: folders and markers of rounds, and what killed rounds left
throughput.py    Throughput: sizes of offsets and files, measured in each round
table_ends.py    TableEnds: where a table ends, and Round: the offsets of one commit
table_offsets.py  the end offsets of a table, for queries that continue there
write_task.py    the tasks: decode slices, convert rows, write files
row_form.py      RowForm: converts the decoded records of a slice into the rows of the table
round_writer.py  RoundWriter: writes and commits a round; Append adds every record as a row
latest/          tables with one row for each key
formats/         Iceberg and Delta: commits, ends, maintenance
files/           Parquet files and their location
"""
