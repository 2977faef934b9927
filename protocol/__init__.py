"""What crosses a boundary: structs, forms and their rules, errors, schemas, frames. No trio, no I/O."""
