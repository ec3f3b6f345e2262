"""The batches of a leader, as a follower appends them.

replicated_batches.py  checks the batches and passes them to the append
replicated_kernels.py  the loop over these batches, compiled
"""
