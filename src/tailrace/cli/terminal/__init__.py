"""Output of a command while it runs, on a terminal.

screen.py        a terminal screen that is repainted in place
progress_bar.py  a progress bar
columns.py       the size of a terminal, and the columns that a text takes
"""
