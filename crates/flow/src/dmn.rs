//! DMN: decision tables, literal expressions and requirement graphs.
