#!/usr/bin/env python3
"""prove.py [--generated FOLDER] [--faults] [--keep FOLDER] [NAME ...]: proofs about the RTL, docs/proofs.md.

NAME.sv is a harness. Its first comment says which module is proved, how, and under which assertions of the RTL:

  // prove TOP by induction DEPTH | by abc-induction DEPTH | by bmc DEPTH | by pdr
  // assume dut.LABEL              an assertion of the RTL that does not have to be proved here: about inputs, which
                                   the environment of the module keeps, or shown by another proof

NAME.faults has a deliberate fault of the RTL for each property, or several:

  == PROPERTY FILE [in TOP] [within STEPS]
  - text that stands in FILE exactly once
  + what stands there instead
  ? an assumption about inputs of TOP that leads the solver to the counterexample; without one it searches by itself

With --faults, each one is put into a copy of the RTL, and the property, alone, must have a counterexample.
"""
import argparse
import copy
import itertools
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
RTL = HERE.parent.parent / "rtl"
SKIPPED = 77
TOOLS = {"yosys": "yosys", "yosys-smtbmc": "yosys", "yosys-abc": "yosys", "z3": "z3"}

# Yosys has no concurrent assertions. Those of the RTL are of two forms, `A |-> B` and `A |=> B`, or plain.
CONCURRENT = re.compile(
    r"(\w+)\s*:\s*assert property \(@\(posedge clk_i\) disable iff \(rst_i\)(.*?)\);"
    r"(?=\s*(?:\w+\s*:|`endif|end\b))", re.S)

# Methods of ABC, and how it reads a model: assumptions become part of the properties, and these become one.
ABC = ("pdr", "abc-induction")
AIGER = "read_aiger {}.aig; fold; strash; orpos"


class Failed(Exception):
    pass


def combinational(match):
    """The same assertion as a combinational one, with registers for what it says about the cycle before. It keeps its
    line."""
    label, text = match.group(1), match.group(2)
    lines = "\n" * text.count("\n")
    before, arrow, after = " ".join(text.split()).rpartition("|=>" if "|=>" in text else "|->")
    registers = ""
    if arrow == "|=>":
        registers = f"logic {label}_q; always_ff @(posedge clk_i) {label}_q <= !rst_i && ({before}); "
        before = f"{label}_q"
        for count, signal in enumerate(re.findall(r"\$stable\((.*?)\)", after)):
            kept = f"{label}_q{count}"
            registers += f"logic [$bits({signal})-1:0] {kept}; always_ff @(posedge clk_i) {kept} <= {signal}; "
            after = after.replace(f"$stable({signal})", f"({kept} == {signal})")
    condition = f"!({before}) || ({after})" if arrow else after
    return f"{registers}always_comb if (!rst_i) {label}: assert ({condition});{lines}"


def sources(generated, folder, fault):
    """Copies of the RTL in the order in which it is read, packages first, with assertions that Yosys understands, and
    the register map."""
    paths = [RTL / "peach2_pkg.sv", generated / "peach2_regs_pkg.sv", generated / "peach2_regfile.sv"]
    paths += sorted(path for path in RTL.glob("peach2*.sv") if path not in paths)
    copies = []
    for path in paths:
        text = path.read_text()
        if fault and fault.file == path.name:
            text = fault.put_into(text)
        text = CONCURRENT.sub(combinational, text)
        if "assert property" in text:
            raise Failed(f"{path.name} has an assertion of a form that prove.py does not know")
        copies.append(folder / path.name)
        copies[-1].write_text(text)
    copies.insert(0, folder / "register_map_pkg.sv")
    copies[0].write_text(register_map())
    return copies


def register_map():
    """rtl/registers.def as a package: the DWs of each kind, in the order of the map."""
    rows = re.findall(r'^(BLOCK|REG|COUNTER|FIELD)\((.*?)(?:, "[^"]*")+\)$', (RTL / "registers.def").read_text(), re.M)
    tables = {kind: [words.split(", ") for name, words in rows if name == kind] for kind, _ in rows}
    registers = [(block, name, int(offset, 0), int(width), access, int(reset, 0))
                 for block, name, offset, width, access, reset in tables["REG"]]
    registers += [("COUNTER", words[0], int(words[1], 0), 32, "RO", 0) for words in tables["COUNTER"]]
    lists = {"RW": [], "RO": [], "FIXED": []}
    for block, base, stride, count in tables["BLOCK"]:
        mine = [register for register in registers if register[0] == block]
        for k, (_, name, offset, width, access, reset) in itertools.product(range(int(count)), mine):
            fields = [words for words in tables["FIELD"] if words[:2] == [block, name]]
            kept = 0 if fields else (1 << width) - 1
            for _, _, _, lsb, bits, field_access in fields:
                kept |= ((1 << int(bits)) - 1) << int(lsb) if field_access == "RW" else 0
            for half in range(width // 32):
                index = (int(base, 0) + k * int(stride, 0) + offset) // 4 + half
                lists[access if access in lists else "FIXED"].append(
                    (index, kept >> 32 * half & 0xffffffff, reset >> 32 * half & 0xffffffff))
    package = "package register_map_pkg;\n"
    for kind, words in lists.items():
        package += f"    localparam int unsigned {kind}_COUNT = {len(words)};\n"
        for part, (what, width) in enumerate((("INDEX", 10), ("KEPT", 32), ("RESET", 32))):
            value = sum(word[part] << width * k for k, word in enumerate(words))
            bits = width * len(words)
            package += f"    localparam logic [{bits - 1}:0] {kind}_{what} = {bits}'h{value:x};\n"
    return package + "endpackage\n"


class Proof:
    """One line `prove` of a harness."""

    def __init__(self, harness, top, method, depth, assumed):
        self.harness, self.top, self.method, self.depth, self.assumed = harness, top, method, depth, assumed

    def lead(self, folder, hints):
        """A copy of the harness in which TOP also assumes what the hints say."""
        assumed = "".join(f"    always_comb assume ({hint});\n" for hint in hints)
        text = re.sub(rf"(\nmodule {self.top}\b.*?\n)(endmodule\n)", lambda match: match[1] + assumed + match[2],
                      self.harness.read_text(), count=1, flags=re.S)
        self.harness = folder / self.harness.name
        self.harness.write_text(text)

    def compile(self, folder, copies, only):
        """Writes TOP.smt2, and TOP.aig for the methods of ABC. only: the property that is left."""
        selected = f"select -assert-min 1 t:$assert n:*{only} %i; delete t:$assert n:*{only} %d\n" if only else ""
        assumed = "".join(f"select -assert-count 1 n:{cell}; chtype -set $assume n:{cell}\n" for cell in self.assumed)
        aiger = (f"dffunmap\ntechmap\nsetundef -anyseq\naigmap\nopt_clean\n"
                 f"write_aiger -zinit -map {self.top}.aim {self.top}.aig\n")
        (folder / f"{self.top}.ys").write_text(
            f"read_verilog -sv -formal -defer -mem2reg {' '.join(path.name for path in copies)} {self.harness}\n"
            f"prep -top {self.top} -flatten\n{assumed}{selected}setundef -undriven -anyseq\nopt_clean\n"
            f"tee -q -o {self.top}.asserts select -list t:$assert\nwrite_smt2 -wires {self.top}.smt2\n"
            f"{aiger if self.method in ABC else ''}")
        run(folder, "yosys", "-q", f"{self.top}.ys", ends=(0,))

    def properties(self, folder):
        return len((folder / f"{self.top}.asserts").read_text().split())

    def counterexample(self, folder, depth=None, label=None):
        """What is violated, from the reset on; None if nothing is, within the depth or, with pdr, ever. label: the only
        property that is left."""
        if self.method in ABC:
            return abc(folder, self.top, "pdr" if self.method == "pdr" else f"bmc3 -F {depth or self.depth + 1}", label)
        output = smtbmc(folder, self.top, "-t", str(depth or self.depth))
        if "Status: PASSED" in output:
            return None
        if "Status: FAILED" not in output or "Assert failed" not in output:
            raise Failed(f"the solver found neither a proof nor a counterexample:\n{output}")
        return violated(output)

    def prove(self, folder, copies):
        """Raises Failed if the properties do not hold."""
        self.compile(folder, copies, None)
        found = self.counterexample(folder)
        if found:
            raise Failed(f"{found}; the trace is {self.top}.vcd (--keep)")
        if self.method == "abc-induction":
            output = run(folder, "yosys-abc", "-c", f"{AIGER.format(self.top)}; ind -C 0 -F {self.depth + 1}")
            if "Networks are equivalent" not in output:
                raise Failed(f"no counterexample from the reset on, but the induction fails:\n{output}")
        if self.method == "induction":
            output = smtbmc(folder, self.top, "-i", "-t", str(self.depth))
            if "Status: PASSED" not in output:
                raise Failed(f"no counterexample from the reset on, but the induction fails:\n{output}")


class Fault:
    """A block of NAME.faults."""

    def __init__(self, head, body, where):
        words = re.fullmatch(r"(\S+) (\S+)(?: in (\w+))?(?: within (\d+))?", head)
        if not words:
            raise Failed(f"{where}: '{head}' is not PROPERTY FILE [in TOP] [within STEPS]")
        self.label, self.file, self.top = words.group(1), words.group(2), words.group(3)
        self.depth = int(words.group(4) or 12)
        self.old = "\n".join(line[2:] for line in body if line.startswith("- "))
        self.new = "\n".join(line[2:] for line in body if line.startswith("+ "))
        self.hints = [line[2:] for line in body if line.startswith("? ")]
        if not self.old or any(line[:2] not in ("- ", "+ ", "? ") for line in body):
            raise Failed(f"{where}: the fault of {self.label} is not made of lines '- ', '+ ' and '? '")

    def put_into(self, text):
        if text.count(self.old) != 1:
            raise Failed(f"the text of the fault of {self.label} stands {text.count(self.old)} times in {self.file}")
        return text.replace(self.old, self.new)


def run(folder, *command, ends=None):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if ends and done.returncode not in ends:
        raise Failed(f"{command[0]} ended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def smtbmc(folder, top, *options):
    return run(folder, "yosys-smtbmc", "-s", "z3", "--unroll", "--presat", "--dump-vcd", f"{top}.vcd", *options,
               f"{top}.smt2")


def violated(output):
    labels = re.findall(r"Assert failed in \w+: (\S+)", output)
    step = re.findall(r"Checking assertions in step (\d+)", output)
    return f"{', '.join(labels)} violated" + (f" in step {step[-1]}" if step else "")


def abc(folder, top, search, label):
    output = run(folder, "yosys-abc", "-c", f"{AIGER.format(top)}; {search}; write_cex -a {top}.aiw")
    if "Property proved" in output or "No output asserted" in output:
        return None
    asserted = re.search(r"Output \d+ of miter .* was asserted in frame (\d+)", output)
    if not asserted:
        raise Failed(f"ABC found neither a proof nor a counterexample:\n{output}")
    if label:
        return f"{label} violated in step {asserted[1]}"
    # the counterexample once more: which property, and as a trace
    replay = smtbmc(folder, top, "--noinit", "--aig-noheader", "--aig", f"{top}.aim:{top}.aiw")
    if "Assert failed" not in replay:
        raise Failed(f"ABC's counterexample is none:\n{replay}")
    return violated(replay)


def harness_read(name):
    """The proofs and the faults of NAME."""
    path = HERE / f"{name}.sv"
    text = path.read_text()
    assumed = re.findall(r"^// assume (\S+)", text, re.M)
    proofs = [Proof(path, top, method, int(depth or 0), assumed) for top, method, depth in
              re.findall(r"^// prove (\w+) by (induction|abc-induction|bmc|pdr)(?: (\d+))?$", text, re.M)]
    if not proofs:
        raise Failed(f"{path.name} has no line '// prove TOP by METHOD'")
    faults = []
    where = HERE / f"{name}.faults"
    for block in re.split(r"^== ", where.read_text(), flags=re.M)[1:]:
        lines = [line for line in block.split("\n") if line.strip() and not line.startswith("#")]
        faults.append(Fault(lines[0], lines[1:], where.name))
    return proofs, faults, set(re.findall(r"^\s*(\w+): assert", text, re.M))


def attempt(folder, generated, proof, fault):
    """One proof, or one fault that it has to notice. Returns what to print."""
    folder.mkdir(parents=True)
    copies = sources(generated, folder, fault)
    if not fault:
        proof.prove(folder, copies)
        bound = "" if proof.method == "pdr" else f" {proof.depth}"
        return f"{proof.properties(folder)} properties hold ({proof.method}{bound})"
    proof.lead(folder, fault.hints)
    proof.compile(folder, copies, fault.label)
    found = proof.counterexample(folder, fault.depth, fault.label)
    if not found:
        raise Failed(f"{fault.label} holds in spite of its fault:\n- {fault.old}\n+ {fault.new}")
    return f"fault noticed: {found}"


def jobs(name, with_faults):
    proofs, faults, properties = harness_read(name)
    if not with_faults:
        return [(proof, None) for proof in proofs]
    unbroken = properties - {fault.label.split(".")[-1] for fault in faults}
    if unbroken:
        raise Failed(f"{name}.faults has no fault that violates {', '.join(sorted(unbroken))}")
    return [(copy.copy(next(proof for proof in proofs if fault.top in (None, proof.top))), fault) for fault in faults]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--generated", type=pathlib.Path, default=HERE.parent.parent / "build/release/generated/rtl",
                        help="where regmap writes peach2_regs_pkg.sv and peach2_regfile.sv")
    parser.add_argument("--faults", action="store_true", help="each deliberate fault instead of the proofs")
    parser.add_argument("--keep", type=pathlib.Path,
                        help="leave models and traces in this folder, which must not exist")
    parser.add_argument("names", nargs="*", metavar="NAME", help="proofs; all of them if none is named")
    options = parser.parse_args()
    missing = [f"{tool} (Debian package {package})" for tool, package in TOOLS.items() if not shutil.which(tool)]
    if missing:
        print(f"SKIPPED: not installed: {', '.join(missing)}")
        return SKIPPED
    names = options.names or sorted(path.stem for path in HERE.glob("*.sv"))
    failures = 0
    with tempfile.TemporaryDirectory(prefix="tcasim-proofs.") as scratch:
        folder = options.keep or pathlib.Path(scratch) / "proofs"
        for name in names:
            for count, (proof, fault) in enumerate(jobs(name, options.faults)):
                start = time.monotonic()
                try:
                    said = attempt((folder / f"{name}-{count}").resolve(), options.generated.resolve(), proof, fault)
                except Failed as failure:
                    failures += 1
                    said = f"FAILED: {failure}"
                print(f"{name} {proof.top}: {said}, {time.monotonic() - start:.1f} s", flush=True)
    return 1 if failures else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failed as failure:
        sys.exit(f"FAILED: {failure}")
