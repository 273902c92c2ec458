"""The paper's table, figures and videos, and a page that shows them: all from runs."""
