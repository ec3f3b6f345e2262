"""The arguments of the command line.

command_parser.py  the parser class: suggestions for mistyped words, errors with the usage of the right verb
completion.py      `tailrace completion`
options.py         options and value types that several commands share
parser.py          all commands with their options and help
"""
