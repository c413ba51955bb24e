//! ContentFilters (Part 4 §7.7): they select events or nodes.
//!
//! A filter is checked and compiled once, when the client sends it. Evaluation allocates nothing unless a value must be
//! converted to a type that needs memory. The caller defines the operands: an [`Evaluate`] returns the values of
//! fields, a [`Resolve`] knows which fields exist.
//!
//! - [`compile`]: from the wire to a [`Filter`], with the result for each element;
//! - [`evaluate`]: the operators, with the three values true, false and null;
//! - [`relation`]: the contents of a RelatedTo;
//! - [`compare`], [`convert`], [`array`]: comparing values of different types; [`like`]: patterns.

mod array;
mod compare;
pub(crate) mod compile;
pub(crate) mod convert;
pub(crate) mod evaluate;
pub(crate) mod like;
pub(crate) mod relation;
#[cfg(test)]
mod tests;

pub(crate) use compile::{Compiled, FilterLimits, Resolve};
pub(crate) use evaluate::Evaluate;

use crate::account::{HeapSize, allocation};
use like::Pattern;
use taktwerk_schema::FilterOperator;
use taktwerk_types::{BuiltInType, Variant};

/// A checked filter. Without elements everything passes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter<T> {
    /// The first element is the result. Operands that are elements always exist and never form a loop.
    elements: Box<[Element<T>]>,
}

/// An operator with its operands. `T` is a type of nodes, as OfType uses it.
#[derive(Debug, Clone, PartialEq)]
struct Element<T> {
    operator: FilterOperator,
    operands: Box<[Operand<T>]>,
}

#[derive(Debug, Clone, PartialEq)]
enum Operand<T> {
    /// A value. LiteralOperand.
    Literal(Variant),
    /// The pattern of a Like.
    Pattern(Pattern),
    /// The result of another element. ElementOperand.
    Element(u32),
    /// A field, by the number from the [`Resolve`]. SimpleAttributeOperand or AttributeOperand; also the relation of a
    /// RelatedTo and the View of an InView.
    Field(u32),
    /// The type of an OfType.
    Type(T),
    /// The target of a Cast.
    Cast(BuiltInType),
}

impl<T> Default for Filter<T> {
    fn default() -> Self {
        Self { elements: Box::default() }
    }
}

impl<T> Filter<T> {
    /// Whether everything passes.
    pub(crate) fn is_empty(&self) -> bool {
        self.elements.is_empty()
    }
}

impl<T> HeapSize for Filter<T> {
    fn heap_size(&self) -> usize {
        let elements = allocation(self.elements.len() * size_of::<Element<T>>());
        self.elements.iter().fold(elements, |sum, element| {
            let operands = allocation(element.operands.len() * size_of::<Operand<T>>());
            element.operands.iter().fold(sum + operands, |sum, operand| {
                sum + match operand {
                    Operand::Literal(value) => value.heap_size(),
                    Operand::Pattern(pattern) => pattern.heap_size(),
                    Operand::Element(_) | Operand::Field(_) | Operand::Type(_) | Operand::Cast(_) => 0,
                }
            })
        })
    }
}
