"""``coband reproduce`` on a claim about a small scenario."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from coband.extensions.evidence.claims import pages, reading, results, verification
from coband.simulator.experiments.runs import executor
from coband.simulator.experiments.runs.executor import InProcess
from coband.simulator.problems.problem import DataError
from tests.cli.fake_cli import Program
from tests.extensions.evidence.claims.test_reproduction import CLAIM, FALSE, SCENARIO, TRUE


@pytest.fixture
def coband(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> Program:
    folder = tmp_path / "claims" / "small"
    folder.mkdir(parents=True)
    (tmp_path / "claims" / "small.yaml").write_text(SCENARIO)
    study = "studies: {scenario: ../small.yaml, set: {grid: null}}"
    at = ", at: {schedule.turns: 20}"
    for name, condition in (("true", TRUE), ("false", FALSE)):
        text = CLAIM.replace("studies: {scenario: small.yaml}", study) + condition.replace(at, "")
        (folder / f"{name}.yaml").write_text(text.replace("sharing needs", f"{name}, sharing needs"))
    panel = "{title: Regret, study: {scenario: ../small.yaml, set: {grid: null}}, labels: [One, N]}"
    (folder / "paper.yaml").write_text(
        f"title: A small paper\ncites: coband\nfigures:\n  - {{title: Curves, where: Figure 1, panels: [{panel}]}}\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(executor, "Local", lambda workers: InProcess())
    monkeypatch.setattr(reading, "folder", lambda: tmp_path / "claims")
    return Program(capsys)


def test_from_claims_to_pages(coband: Program, tmp_path: Path) -> None:
    status, out, err = coband("reproduce", "all", "--quick", "--pages", "pages")
    assert status == 0
    assert "small/true: holds, 3 replications" in err
    assert "2 claims: 1 does not hold, 1 holds" in out
    index, page = (tmp_path / "pages" / name for name in ("index.md", "small.md"))
    assert "| [A small paper](small.md) | 1 | 1 |  |  |  |" in index.read_text()
    assert "- ✗ [false, sharing needs messages](small.md#small-false)\n" in index.read_text()
    assert "scalars: N is at least 1 | 0 | 0 to 0 |" in page.read_text()
    assert "](small_1_1.svg)" in page.read_text()
    assert "<svg" in (tmp_path / "pages" / "small_1_1.svg").read_text()
    assert dict(pages.texts(tmp_path / "runs/reproduce/results")) == {
        file.name: file.read_text() for file in (tmp_path / "pages").iterdir()
    }  # the same pages again, to the last byte


def test_results_of_other_claims_stay(coband: Program) -> None:
    assert coband("reproduce", "small/true")[0] == 0
    assert coband("reproduce", "false", "--resume")[0] == 0
    found = results.read(Path("runs/reproduce/results"))
    assert list(found) == ["small/false", "small/true"]
    assert pages.badge(Path("runs/reproduce/results")).startswith(
        "2 of 2 claims tried: 1 hold, 1 do not, 0 are undecided; last run 20"
    )


def test_finished_jobs_are_not_run_over_by_accident(coband: Program) -> None:
    assert coband("reproduce", "true")[0] == 0
    status, _, err = coband("reproduce", "true")
    assert status == 2
    assert "go on with --resume, or choose another --out DIR" in err


def test_verify_runs_jobs_again(coband: Program) -> None:
    coband("reproduce", "true")
    status, out, _ = coband("reproduce", "--verify", "2")
    assert (status, out.splitlines()[-1]) == (0, "2 jobs run again: 2 the same, 0 different")
    file = Path("runs/reproduce/results/small.json")
    content = json.loads(file.read_text())
    (variants,) = content["jobs"].values()
    variants["One"][:] = ["0" * len(one) for one in variants["One"]]
    file.write_text(json.dumps(content))
    status, out, _ = coband("reproduce", "--verify", "1")
    assert status == 1
    assert "DIFFERS" in out


def changed(change: Callable[[dict[str, Any]], None]) -> None:
    """A results file changed by hand: what it says of the first condition of a claim."""
    file = Path("runs/reproduce/results/small.json")
    content = json.loads(file.read_text())
    change(content["claims"]["small/true"]["findings"][0])
    file.write_text(json.dumps(content))


def test_a_claim_made_true_by_its_results_file_is_found(coband: Program) -> None:
    coband("reproduce", "true")
    assert coband("reproduce", "--verify", "3")[0] == 0
    changed(lambda finding: finding["evidence"].update(holds=-9.0, fails=9.0))
    assert results.read(Path("runs/reproduce/results"))["small/true"].nearest[0] == "does not hold"
    status, _, err = coband("reproduce", "--verify", "1")
    assert (status, "does not follow from its replications" in err) == (1, True)


@pytest.mark.parametrize("change", [{"findings": 2}, {"quantifier": "any"}])
def test_a_condition_added_by_hand_or_another_quantifier_is_found(coband: Program, change: dict[str, Any]) -> None:
    coband("reproduce", "true")
    file = Path("runs/reproduce/results/small.json")
    content = json.loads(file.read_text())
    claim = content["claims"]["small/true"]
    claim |= {"findings": claim["findings"] * 2} if "findings" in change else change
    file.write_text(json.dumps(content))
    status, _, err = coband("reproduce", "--verify", "1")
    assert (status, "small/true: the file has other settings or conditions" in err) == (1, True)


def test_a_claim_without_numbers_of_its_replications_is_named(coband: Program) -> None:
    """Nobody can tell whether such a claim was changed by hand, and that is said."""
    coband("reproduce", "true")
    changed(lambda finding: finding.update(rows=[]))
    status, _, err = coband("reproduce", "--verify", "1")
    assert status == 0
    assert "1 of 1 claims have no numbers of their replications on file" in err
    assert err.rstrip().endswith(": small/true")


def test_replications_changed_by_hand_are_found(coband: Program) -> None:
    """Evidence and estimates that follow from made-up replications: running them again tells."""
    coband("reproduce", "true")

    def lie(finding: dict[str, Any]) -> None:
        (placed,) = (one for one in reading.claims() if one.name == "true")
        fake = placed.claim.conditions[0].judge([[0.0]] * 3)
        finding.update(asdict(fake))

    changed(lie)
    status, _, err = coband("reproduce", "--verify", "1")
    assert (status, "gives other numbers than the file says" in err) == (1, True)


def test_results_files_are_gone_on_with(coband: Program) -> None:
    """Without the finished jobs of before: one replication runs again, and its fingerprint decides."""
    claim = Path("claims/small/true.yaml")
    text = claim.read_text().partition("conditions:")[0]
    claim.write_text(f"{text}conditions:\n  - {{kind: share, of: scalars, term: One, at_least: 0.9}}\n")
    coband("reproduce", "true")
    rmtree("runs/reproduce/jobs")
    claim.write_text(claim.read_text().replace("most: 6", "most: 8"))
    file = Path("runs/reproduce/results/small.json")
    content = json.loads(file.read_text())
    content["claims"]["small/true"]["origin"]["git"] = {"commit": "of before"}
    file.write_text(json.dumps(content))
    assert coband("reproduce", "true", "--resume")[0] == 0
    found = results.read(Path("runs/reproduce/results"))["small/true"]
    ((prints,),) = (variants.values() for variants in found.fingerprints.values())
    assert (found.replications, len(found.findings[0].rows), len(prints)) == (8, 8, 8)
    assert len(list(Path("runs/reproduce/jobs").rglob("*.json.gz"))) == 3  # two new ones, and one of the six before


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "kept has results of small/true already; go on from them with --resume, or choose another --results DIR."),
        (
            ("--resume", "--quick"),
            "kept has results of small/true at full size with the claims' own seeds, which these",
        ),
        (("--seed", "777001"), "--seed 777001 is the seed on which settings are chosen, which tests nothing"),
        (("--resume", "--seed", "3"), "kept has results of small/true at full size with the claims' own seeds, which"),
    ],
)
def test_results_are_not_replaced_by_others(coband: Program, arguments: tuple[str, ...], message: str) -> None:
    coband("reproduce", "true", "--results", "kept")
    before = Path("kept/small.json").read_bytes()
    status, _, err = coband("reproduce", "true", "--results", "kept", "--out", "elsewhere", *arguments)
    assert (status, message in err) == (2, True), err
    assert Path("kept/small.json").read_bytes() == before
    assert coband("reproduce", "false", "--results", "kept", "--out", "elsewhere")[0] == 0  # of another claim


def test_a_budget_may_have_a_unit(coband: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    priorities = list[int]()
    monkeypatch.setattr("os.nice", priorities.append)  # what this process lowers it cannot raise again
    assert coband("reproduce", "true", "--budget", "90m", "--nice")[0] == 0
    assert priorities == [19]
    status, _, err = coband("reproduce", "true", "--budget", "soon")
    assert (status, "soon" in err) == (2, True)


def add_silent(folder: Path) -> None:
    """A claim about the same study that needs one of its variants alone."""
    claims = folder / "claims" / "small"
    alone = (claims / "true.yaml").read_text().partition("conditions:")[0]
    condition = "conditions:\n  - {kind: value, of: scalars, term: N, at_most: 0}\n"
    (claims / "silent.yaml").write_text(alone.replace("title: true", "title: silent") + condition)


def test_claims_that_share_a_study_are_verified_with_all_its_variants(coband: Program, tmp_path: Path) -> None:
    """A results file has the fingerprints of a study once, also of variants that only another claim needs."""
    add_silent(tmp_path)
    coband("reproduce", "all")
    status, out, _ = coband("reproduce", "--verify", "6")
    assert (status, out.splitlines()[-1]) == (0, "6 jobs run again: 6 the same, 0 different")


def test_variants_that_only_other_claims_need_are_no_differences(coband: Program, tmp_path: Path) -> None:
    add_silent(tmp_path)
    coband("reproduce", "all")
    status, out, _ = coband("reproduce", "silent", "--verify", "20")
    assert (status, out.splitlines()[-1]) == (0, "3 jobs run again: 3 the same, 0 different")


def test_a_difference_of_hardware_is_named_before_one_of_results(coband: Program) -> None:
    coband("reproduce", "true")
    file = Path("runs/reproduce/results/small.json")
    content = json.loads(file.read_text())
    (variants,) = content["jobs"].values()
    variants["One"][:] = ["0" * len(one) for one in variants["One"]]
    claim = content["claims"]["small/true"]
    claim["origin"]["hardware"]["BLAS kernels"] = "Prescott"
    file.write_text(json.dumps(content))
    status, _, err = coband("reproduce", "--verify", "20")
    assert (status, "BLAS kernels: Prescott and" in err) == (1, True)
    del claim["origin"]["hardware"]
    file.write_text(json.dumps(content))
    status, _, err = coband("reproduce", "--verify", "20")
    assert (status, "do not say what computed them" in err) == (1, True)


def test_jobs_without_their_data_are_no_differences(coband: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    coband("reproduce", "true")
    sample = verification.sample

    def without_data(*given: Any) -> list[Any]:
        gone = DataError("the file is gone")
        return [(replace(study, sweep=replace(study.sweep, missing=gone)), *job) for study, *job in sample(*given)]

    monkeypatch.setattr(verification, "sample", without_data)
    status, out, err = coband("reproduce", "--verify", "2")
    assert (status, out.splitlines()[-1]) == (1, "2 jobs run again: 0 the same, 0 different, 2 without a fingerprint")
    assert "no fingerprint: the file is gone" in err


def test_another_seed_gives_other_jobs_and_is_said(coband: Program) -> None:
    coband("reproduce", "true", "--results", "own")
    assert coband("reproduce", "true", "--seed", "11", "--resume", "--results", "others", "--pages", "pages")[0] == 0
    found = [results.read(Path(folder))["small/true"].fingerprints for folder in ("own", "others")]
    own, other = ({job for study in one.values() for jobs in study.values() for job in jobs} for one in found)
    assert len(own) == len(other) == 3
    assert not own & other
    assert "; seed 11; e" in Path("pages/small.md").read_text()
    assert "<svg" in Path("pages/small_1_1.svg").read_text()
    for seed in (["--seed", "11"], []):  # the results files say it
        status, out, _ = coband("reproduce", "true", "--verify", "2", *seed, "--results", "others")
        assert (status, out.splitlines()[-1]) == (0, "2 jobs run again: 2 the same, 0 different")
    status, _, err = coband("reproduce", "true", "--verify", "2", "--seed", "12", "--results", "others")
    assert (status, "has no results of these claims" in err) == (2, True)


def test_json(coband: Program) -> None:
    status, out, _ = coband("reproduce", "true", "--json")
    (claim,) = json.loads(out)["claims"]
    assert (status, claim["verdict"], claim["replications"]) == (0, "holds", 3)
    assert claim["findings"][0]["interval"] is not None
    status, out, _ = coband("reproduce", "--verify", "2", "--json")
    found = json.loads(out)
    assert (status, [job["comparison"] for job in found["jobs"]]) == (0, ["same"] * 2)
    assert (found["disagreements"], found["without_numbers"]) == ([], [])
    status, out, _ = coband("reproduce", "--list", "--json")
    assert (status, {entry["claim"] for entry in json.loads(out)}) == (0, {"small/true", "small/false"})


def test_list(coband: Program) -> None:
    status, out, _ = coband("reproduce", "--list")
    assert status == 0
    assert out.splitlines()[-1] == "2 claims"
    assert "small/true" in out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["smal"], "no paper and no claim 'smal'; did you mean small"),
        (["--quick", "--full"], "--quick or --full, not both"),
        (["--workers", "2", "--cluster", "tcp://x:1"], "--workers or --cluster, not both"),
        (["--verify", "3"], "has no results of these claims"),
        (["--budget", "0"], "budget"),
    ],
)
def test_bad_input(coband: Program, arguments: list[str], message: str) -> None:
    status, _, err = coband("reproduce", *arguments)
    assert status == 2
    assert message in err


def test_a_damaged_results_file_is_refused(coband: Program) -> None:
    folder = Path("runs/reproduce/results")
    folder.mkdir(parents=True)
    (folder / "small.json").write_text('{"version": 9}')
    status, _, err = coband("reproduce", "--pages", "pages")
    assert status == 2
    assert "is of version 9; this coband reads version 2" in err
