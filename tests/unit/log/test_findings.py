from tailrace.log.inspect.findings import Finding, Severity


def test_a_finding_is_printed_with_its_file_and_position() -> None:
    assert str(Finding("a.log", "is torn", 17)) == "a.log at position 17: is torn"
    assert str(Finding("a.log", "is missing")) == "a.log: is missing"
    assert Finding("a.log", "is torn").is_problem
    assert not Finding("a.log", "is old", severity=Severity.NOTE).is_problem
