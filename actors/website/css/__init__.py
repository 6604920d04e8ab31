"""What a page's own style sheets make of its elements."""
