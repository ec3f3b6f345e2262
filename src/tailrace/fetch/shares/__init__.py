"""Share groups (KIP-932), the delivery of records: what is out with whom, what came of it, and the requests for more.

May import: what `tailrace.fetch` may.
"""
