"""The checks that every skill must pass before it is used or stored."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from ai_platform_engineering.skills_middleware.binaries import binary_kind
from ai_platform_engineering.skills_middleware.document import SkillDocument, parse_document
from ai_platform_engineering.skills_middleware.paths import file_system_key, normalised, path_problem, size_problem
from ai_platform_engineering.skills_middleware.scanning import Finding, scan
from ai_platform_engineering.skills_middleware.skill import (
    DOCUMENT,
    Access,
    InvalidSkillError,
    Provenance,
    Skill,
    SkillContent,
    SkillProblem,
    content_digest,
)
from ai_platform_engineering.utils.characters import quoted

MAX_DOCUMENT_SIZE: Final = 64 * 1024
MAX_FILE_SIZE: Final = 256 * 1024
MAX_SKILL_SIZE: Final = 512 * 1024
MAX_FILES: Final = 64


@dataclass(frozen=True, slots=True)
class CheckedSkill:
    """A skill that passed all checks. `text` is SKILL.md, `files` are the other files by path, `size` is in bytes."""

    document: SkillDocument
    text: str
    files: Mapping[str, str]
    size: int
    findings: tuple[Finding, ...] = ()

    @property
    def content(self) -> SkillContent:
        return SkillContent(self.text, self.document.instructions, self.files)


def checked_skill(files: Mapping[str, bytes | str], *, folder: str | None = None) -> CheckedSkill:
    """Check the files of a skill, given by path; raises `InvalidSkillError` with every problem.

    `folder` is the name of the skill's folder, which must equal its name; None if there is no folder.
    """
    if len(files) > MAX_FILES:
        raise InvalidSkillError(
            [SkillProblem("too_many_files", f"the skill has {len(files)} files; {MAX_FILES} are allowed")]
        )
    encoded = {path: _encoded(content) for path, content in files.items()}
    if (size := sum(map(len, encoded.values()))) > MAX_SKILL_SIZE:
        raise InvalidSkillError(
            [SkillProblem("skill_too_large", f"the skill has {size} bytes; {MAX_SKILL_SIZE} are allowed")]
        )
    problems: list[SkillProblem] = []
    texts: dict[str, str] = {}
    paths: list[str] = []
    for raw, data in encoded.items():
        path = normalised(raw)
        if problem := path_problem(path) or size_problem(path):
            problems.append(problem)
            continue
        paths.append(path)
        try:
            texts[path] = _text(path, data)
        except InvalidSkillError as error:
            problems += error.problems
    problems += _conflicts(paths)
    problems += _misplaced_documents(paths)
    document: SkillDocument | None = None
    if DOCUMENT in texts:
        try:
            document = parse_document(texts[DOCUMENT], folder)
        except InvalidSkillError as error:
            problems += error.problems
    findings = scan(texts)
    problems += [
        SkillProblem(finding.code, f"{finding.message} (line {finding.line})", finding.path)
        for finding in findings
        if finding.severity == "critical"
    ]
    if problems or document is None:
        raise InvalidSkillError(problems)
    text = texts.pop(DOCUMENT)
    size = sum(len(each.encode()) for each in (text, *texts.values()))
    return CheckedSkill(document, text, dict(sorted(texts.items())), size, findings)


def build_skill(checked: CheckedSkill, access: Access, provenance: Provenance) -> Skill:
    """The catalog entry for a checked skill."""
    document = checked.document
    return Skill(
        name=document.name,
        description=document.description,
        provenance=provenance,
        access=access,
        license=document.license,
        compatibility=document.compatibility,
        metadata=document.metadata,
        files=tuple(checked.files),
        size=checked.size,
        digest=content_digest(checked.text, checked.files, access),
    )


def _encoded(content: bytes | str) -> bytes:
    # JSON can contain half of a surrogate pair. It becomes bytes that are not UTF-8, which `_text` reports.
    return content.encode("utf-8", "surrogatepass") if isinstance(content, str) else content


def _text(path: str, data: bytes) -> str:
    limit = MAX_DOCUMENT_SIZE if path == DOCUMENT else MAX_FILE_SIZE
    if len(data) > limit:
        code = "document_too_large" if path == DOCUMENT else "file_too_large"
        raise _invalid(code, f"the file has {len(data)} bytes; {limit} are allowed", path)
    if (binary := binary_kind(path, data)) is not None:
        raise _invalid(binary.code, f"the file is {binary.description}; a skill has text files only", path)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _invalid("encoding", f"the file is not UTF-8 text (byte {error.start}); save it as UTF-8", path) from None


def _conflicts(paths: list[str]) -> list[SkillProblem]:
    """Paths that some file systems treat as the same file, and paths that are both a file and a folder."""
    problems = []
    seen: dict[str, str] = {}
    for path in paths:
        key = file_system_key(path)
        if key in seen:
            problems.append(
                SkillProblem(
                    "path_conflict", f"the paths {quoted(seen[key])} and {quoted(path)} differ only in spelling"
                )
            )
        seen[key] = path
    for key, path in seen.items():
        parents = key.split("/")[:-1]
        for depth in range(1, len(parents) + 1):
            if (parent := seen.get("/".join(parents[:depth]))) is not None:
                problems.append(
                    SkillProblem("path_conflict", f"{quoted(parent)} is a file and the folder of {quoted(path)}")
                )
    return problems


def _misplaced_documents(paths: list[str]) -> list[SkillProblem]:
    problems = [
        SkillProblem("several_documents", f"there is another {DOCUMENT}; send one skill at a time", path)
        for path in paths
        if path != DOCUMENT and path.rpartition("/")[2] == DOCUMENT
    ]
    if DOCUMENT not in paths:
        near = [path for path in paths if path.rpartition("/")[2].lower() == DOCUMENT.lower()]
        hint = f"; {quoted(near[0])} is not it" if near else ""
        problems.append(SkillProblem("document_missing", f"there is no {DOCUMENT} at the root of the skill{hint}"))
    return problems


def _invalid(code: str, message: str, path: str) -> InvalidSkillError:
    return InvalidSkillError([SkillProblem(code, message, path)])
