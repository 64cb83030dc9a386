"""The explanation as text, Markdown and JSON; FlexAttention and optional packages."""

import msgspec
import pytest
import torch

from attnprof.core.errors import InvalidInput
from attnprof.core.mask import Causal, Window
from attnprof.core.problem import Problem
from attnprof.explain import Call, explain, packages
from attnprof.explain.rules.ruleset import RuleSet, rule_sets
from attnprof.explain.switches import Switches

PROBLEMS = (
    Problem(q_heads=12, q_len=2048, mask=Causal()),
    Problem(
        q_heads=12, kv_heads=4, q_len=4096, head_dim=512, dtype="bfloat16", mask=Window(127, 0), dropout=0.1
    ),
    Problem(q_heads=8, q_len=5, kv_len=9, v_dim=32, dtype="float16", direction="fwd_bwd"),
)


@pytest.mark.parametrize("device", ["cpu", "T4", "MI300X", "Gaudi 3"])
@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_text_fits_eighty_columns_and_holds_every_reason(problem, device):
    e = explain(problem, device)
    lines = str(e).splitlines()
    assert max(map(len, lines)) <= 80
    flat = " ".join(str(e).split())
    for report in e.backends:
        assert report.title in flat
        for r in report.rejections:
            assert " ".join(r.reason.split()) in flat
            assert " ".join(r.fix.split()) in flat


def test_markdown_is_one_table_with_a_row_a_reason():
    e = explain(PROBLEMS[1], "T4")
    rows = [line for line in e.to_markdown().splitlines() if line.startswith("|")]
    assert len(rows) == 2 + sum(max(1, len(b.rejections)) for b in e.backends)
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1
    assert e._repr_markdown_() == e.to_markdown()


def test_json_holds_the_whole_explanation():
    e = explain(PROBLEMS[0], "T4")
    data = msgspec.json.decode(msgspec.json.encode(e))
    assert data["chosen"] == e.chosen
    assert {b["name"] for b in data["backends"]} >= {"flash", "mem_efficient", "cudnn", "math", "flex"}
    assert all(r["source"] for b in data["backends"] for r in b["rejections"])


def test_a_call_from_tensors_keeps_what_decides():
    base = torch.zeros(1, 16, 4, 64, requires_grad=True).transpose(1, 2)
    call = Call.from_tensors(base, base.detach(), base.detach(), dropout_p=0.1, scale=0.5)
    assert call.q.strides == (4096, 64, 256, 1)
    assert call.needs_grad
    assert call.scale == 0.5
    with torch.no_grad():
        assert not Call.from_tensors(base, base, base).needs_grad
    assert str(call).endswith("float32 dropout=0.1 scale=0.5, grad")


@pytest.mark.filterwarnings("ignore")  # the prototypes of both layouts warn
def test_nested_and_sparse_tensors_are_refused_in_plain_words():
    dense = torch.zeros(1, 4, 16, 64)
    nested = torch.nested.nested_tensor([torch.zeros(4, 16, 64), torch.zeros(4, 8, 64)])
    with pytest.raises(InvalidInput, match="nested"):
        Call.from_tensors(nested, dense, dense)
    with pytest.raises(InvalidInput, match="sparse_coo"):
        Call.from_tensors(dense, dense.to_sparse(), dense)


def flex_rules(problem, device):
    return {str(r.rule) for r in explain(problem, device, switches=Switches()).backend("flex").rejections}


def test_flex_attention_is_possible_with_what_to_rewrite():
    note = explain(Problem(q_heads=4, q_len=64, mask=Window(3, 0))).backend("flex").note
    assert "mask_mod" in note
    assert flex_rules(Problem(q_heads=4, q_len=64, dropout=0.5), "H100") == {"dropout"}
    assert flex_rules(Problem(q_heads=4, q_len=64, direction="fwd_bwd"), "cpu") == {"grad"}
    assert flex_rules(Problem(q_heads=4, q_len=64, direction="fwd_bwd"), "H100") == set()
    assert flex_rules(Problem(q_heads=4, q_len=64, dtype="float64"), "cpu") == {"dtype"}
    assert flex_rules(Problem(q_heads=4, q_len=64, head_dim=8), "H100") == {"head dim"}
    assert flex_rules(Problem(q_heads=4, q_len=64), "sm_61") == {"compute capability"}


def test_reasons_of_flex_attention_cite_its_own_file():
    e = explain(Problem(q_heads=4, q_len=64, dtype="float64", direction="fwd_bwd", dropout=0.5))
    assert {r.source.split(": ")[1].split(",")[0] for r in e.backend("flex").rejections} == {
        "torch/nn/attention/flex_attention.py"
    }


def test_packages_are_found_by_metadata_and_not_imported(monkeypatch):
    import sys

    monkeypatch.setattr(packages, "_version", {"flash-attn": "2.8.3"}.get)
    e = explain(Problem(q_heads=4, q_len=64, dtype="float16", mask=Window(3, 0)), "A100")
    report = e.backend("flash-attn")
    assert report.title == "flash-attn 2.8.3"
    assert [str(r.rule) for r in report.rejections] == ["mask"]
    assert "github.com" in report.rejections[0].source
    assert (
        explain(Problem(q_heads=4, q_len=64, dtype="float16"), "A100").backend("flash-attn").status
        == "possible"
    )
    old = explain(Problem(q_heads=4, q_len=64, dtype="float16"), "T4").backend("flash-attn")
    assert [str(r.rule) for r in old.rejections] == ["compute capability"]
    wide = explain(Problem(q_heads=4, q_len=64, dtype="float16", v_dim=128, dropout=0.1), "A100")
    assert [str(r.rule) for r in wide.backend("flash-attn").rejections] == ["head dim"]
    assert "flash_attn" not in sys.modules
    assert "flash-attn" not in e.not_installed
    assert "xformers" in e.not_installed


def test_every_rule_set_names_its_sources():
    for rules in rule_sets():
        assert isinstance(rules, RuleSet)
        assert len(rules.evidence) > 40
        assert all("/" in source for source in rules.sources.values())
    keys = [set(rules.sources) for rules in rule_sets()]
    assert all(k == keys[0] for k in keys)


def test_no_module_of_torch_is_needed_for_another_device():
    import subprocess
    import sys

    code = (
        "import sys; from attnprof.core.problem import Problem; from attnprof.explain import explain; "
        "e = explain(Problem(q_heads=4, q_len=64), 'T4'); print(e.chosen, 'torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert out.split() == ["mem_efficient", "False"]
