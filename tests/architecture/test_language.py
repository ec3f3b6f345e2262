"""The English of modules and documents follows the rules of language.py."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.architecture.language import ROOT, files, findings_of

# Places whose text has been rewritten by the rules. The list grows until it is `default_places()`.
CLEAN = (
    "ARCHITECTURE.md",
    "CONTRIBUTING.md",
    "README.md",
    "src/pyspark_tailrace",
    "src/tailrace/cli",
    "src/tailrace/client",
    "src/tailrace/diagnostics",
    "src/tailrace/embedded.py",
    "src/tailrace/exports.py",
    "src/tailrace/faults.py",
    "src/tailrace/java.py",
    "src/tailrace/local_cluster",
    "src/tailrace/node",
    "src/tailrace/object_stores",
    "src/tailrace/pytest_plugin.py",
    "src/tailrace/spark",
    "tests/conformance/test_cli_cluster_status.py",
    "tests/conformance/test_cli_groups.py",
    "tests/conformance/test_cli_wire.py",
    "tests/conformance/test_client_admin.py",
    "tests/conformance/test_client_batches.py",
    "tests/conformance/test_client_security.py",
    "tests/conformance/test_cluster_up.py",
    "tests/conformance/test_embedded_below.py",
    "tests/conformance/test_migration.py",
    "tests/integration/test_compaction_job.py",
    "tests/integration/test_embedded.py",
    "tests/integration/test_explain_fetch.py",
    "tests/integration/test_export_job.py",
    "tests/integration/test_install.py",
    "tests/integration/test_loaded_directory_in_kafka.py",
    "tests/integration/test_pytest_plugin.py",
    "tests/integration/test_reindex_job.py",
    "tests/integration/test_replay_with_kafka.py",
    "tests/integration/test_spark_group_commits.py",
    "tests/integration/test_spark_races.py",
    "tests/integration/test_spark_sink.py",
    "tests/integration/test_spark_sink_soak.py",
    "tests/integration/test_spark_stream_reader.py",
    "tests/integration/test_spark_wire.py",
    "tests/integration/test_spark_worker_process.py",
    "tests/spark",
    "tests/support/cluster_command.py",
    "tests/support/command.py",
    "tests/support/filled_topics.py",
    "tests/support/inline_spark.py",
    "tests/support/s3_server.py",
    "tests/support/sink_run.py",
    "tests/support/source_rows.py",
    "tests/support/spark_cluster.py",
    "tests/support/spark_session.py",
    "tests/support/spark_types.py",
    "tests/support/tailrace_process.py",
    "tests/unit/cli",
    "tests/unit/client",
    "tests/unit/local_cluster",
    "tests/unit/node",
    "tests/unit/object_stores",
    "tests/unit/spark",
)


def test_clean_places_have_no_findings() -> None:
    found = [str(one) for path in files(ROOT / name for name in CLEAN) for one in findings_of(path)]
    assert found == []


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ('"""Return the floor segment."""\n', []),
        ('"""What a member has."""\n', ["docstring opens with a question word"]),
        ('raise ValueError("the client is told about it")\n', ['"told" (better: report, return, log, notify)']),
        ("name = 1  # the caller shall wait\n", ['"shall" (better: must, is to)']),
        ("def test_a_member_is_told() -> None: ...\n", ['"told" (better: report, return, log, notify)']),
        (f'"""A sentence {"with many words " * 14}."""\n', ["sentence of over 40 words"]),
        ('"""A word in code, `told`, is a name."""\n', []),
    ],
)
def test_findings_in_a_module(tmp_path: Path, text: str, rules: list[str]) -> None:
    module = tmp_path / "module.py"
    module.write_text(text)
    assert [one.rule for one in findings_of(module)] == rules


def test_code_blocks_of_a_page_are_not_checked(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("The client is told.\n\n```\nthe client is told\n```\n")
    assert [one.line for one in findings_of(page)] == [1]
