"""Which messages of a topic a subscription wants."""

from dataclasses import dataclass, field


@dataclass
class ContentFilterOptions:
    filter_expression: str = ""
    expression_parameters: list = field(default_factory=list)
