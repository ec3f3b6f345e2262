"""Schema evolution: the schema of a table follows that of its topic.

evolve.py            evolve: the changes that a table needs, or the reason why it cannot have them
evolve_tables.py     makes the changes in Iceberg and Delta tables
"""
