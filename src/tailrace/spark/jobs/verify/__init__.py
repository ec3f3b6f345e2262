"""`tailrace job verify` and `tailrace job reindex`.

verify.py    checks data directories, with the findings of `tailrace log verify`
state.py     VerifyState: verified segments, so that a long job can resume
reindex.py   rebuilds the indexes of sealed segments
"""
