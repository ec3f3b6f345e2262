"""`tailrace produce` and `tailrace consume`.

records_arguments.py   options of both
produce.py             `produce`: write lines of standard input or of a file as records
produce_lines.py       parses lines: plain, with key and headers, or JSON
consume.py             `consume`: print records as text, JSON lines, values or Parquet
group_consume.py       `consume --group`: read as a member of a consumer group
start_place.py         the values of --from: beginning, latest, an offset, a number before the end, a time
record_filter.py       --key, --grep, --header and --where
record_expression.py   the expression of --where
search_progress.py     --progress: how far a search is
record_format.py       `consume -f`: the tokens of kcat
record_printer.py      prints records in the chosen form
record_text.py         records as JSON objects or as fields with tabs
"""
