"""Runs an agent whose answer matches a schema: LLM_KEY=... python agent.py https://shop.example/products"""

import os
import sys

from pilothouse import Pilothouse

client = Pilothouse()
result = client.agents.run(
    f"Find the cheapest product on {sys.argv[1]}.",
    schema={
        "type": "object",
        "properties": {"name": {"type": "string"}, "price": {"type": "number"}},
        "required": ["name", "price"],
    },
    llm_key=os.environ["LLM_KEY"],
    session={"model": os.environ.get("LLM_MODEL", "anthropic/claude-haiku-4-5"), "limits": {"steps": 20}},
    on_step=lambda entry: print(entry["role"], entry["content"]["kind"], file=sys.stderr),
)
print(f"{result.output['name']} costs {result.output['price']}")
