"""`python -m tailrace` is `tailrace`."""

from tailrace.cli.main import main

raise SystemExit(main())
