"""Is it an order, or a sentence about one?

A text about prompt injection has to quote it, and a note on agents says what models do. Both hold the words of an
attack and neither is one. What is quoted counts as talk only where words outside the quotation say so: an order does
not become harmless by quotation marks.
"""

import re

_SUBJECT = re.compile(
    r"(?:\b(?:to|can|could|may|might|would|will|they|we|it|i|he|she|which|who|that|often|sometimes|usually|rarely|not|"
    r"never|cannot|can't|don't|doesn't|didn't|won't|nobody|nothing|shouldn't|the|an?|its|their|our|my|your|no)|"
    r"[a-z]{2,}(?<!way)(?<!yes)s) {1,3}$"
)
_TO_YOU = re.compile(r"\byou(?:'ll|'d)?\b[\w' ]{0,25} (?:to|can|could|may|might|would|will) {1,3}$|\btask is to {1,3}$")


_STARTS = re.compile(
    r"(?:^|[^\w\s'’][\s*_\"'`>#-]{0,8}|\n[\s*_\"'`>#-]{0,8}|[\"*`(\[]|\b(?:"
    r"et|y|e|ed|puis|alors|donc|maintenant|toujours|siempre|sempre|automati\w+|favor|ahora|agora|ora|adesso|luego|poi|"
    r"entonces|entao|simple\w+|tambien|tambem|anche|aussi|veuillez|plait|dois|devez|debes?|deve|devi|dovete|pero|mais|ma|"
    r"mas|cosi|asi|assim|ainsi|asi que|quindi|dunque|percio|tanto|tu|vous|usted|voce|lei|de|a) {1,3})$"
)


def described(mood: str, plain: str, start: int) -> bool:
    """True where the words before `start` make it a statement about somebody, or a prohibition, and no order."""
    if not mood:
        return False
    before = plain[max(0, start - 60) : start]
    if mood == "clause-start":
        return _STARTS.search(before) is None
    return _SUBJECT.search(before) is not None and _TO_YOU.search(before) is None


# Words that show that a text speaks of attacks or of patterns, in the languages of the table.
_ABOUT = re.compile(
    r"inject|attack|malicious|jailbreak|adversar|payload|poison|phras|pattern|screening|detect|filter|flagg|"
    r"withh[eo]ld|hostile|untrusted|red[- ]team|example|e\.g\.|such as|marker|delimiter|template|spoof|forg(?:e|ing)|"
    r"imitat|scanner|saniti[sz]|neutrali[sz]|exfiltrat|"
    r"angriff|angreif|injektion|einschleus|muster|erkenn|beispiel|schadlich|attaque|motif|exemple|malveillant|"
    r"ataque|atacante|patron|ejemplo|malicios|inyecci|padrao|exemplo|injecao|attacco|iniezion|esempi|malevol|"
    r"атак|инъекц|шаблон|пример|вредонос|фильтр|注入|攻击|攻擊|示例|例如|检测|檢測|恶意|惡意|过滤|"
    r"攻撃|インジェクション|検出|例えば|悪意|フィルタ|공격|주입"
)
_SPAN = re.compile(
    r"`[^`\n]{1,200}`|\"[^\"\n]{1,200}\"|(?<!\w)'[^'\n]{1,200}'(?!\w)|「[^」\n]{1,120}」|『[^』\n]{1,120}』|“[^”\n]{1,200}”"
)
_FENCE = re.compile(r"(?m)^ {0,3}(?:```|~~~)[^\n]*$")
_TAG_ALONE = re.compile(
    r"`\s?(?:<[^<>`]{1,80}>|\[[^\[\]`]{1,30}\])(?:\s?(?:…|\.\.\.)?\s?(?:<[^<>`]{1,80}>|\[[^\[\]`]{1,30}\]))?\s?`"
)


def mentioned(plain: str, start: int, end: int) -> bool:
    """True where the match is quoted and the words around the quotation say that it is talked about."""
    first = max(plain.rfind("\n\n", 0, start) + 1, start - 2000, 0)
    last = plain.find("\n\n", end)
    paragraph = plain[first : min(last if last >= 0 else len(plain), end + 2000)]
    for span in _SPAN.finditer(paragraph):
        if span.start() <= start - first and end - first <= span.end():
            if _TAG_ALONE.fullmatch(span.group()):
                return True
            return _ABOUT.search(_SPAN.sub(" ", paragraph)) is not None
    fences = [fence.start() for fence in _FENCE.finditer(plain, max(0, start - 4000), start)]
    if len(fences) % 2:
        intro = plain[max(0, fences[-1] - 300) : fences[-1]]
        return _ABOUT.search(intro) is not None
    return False
