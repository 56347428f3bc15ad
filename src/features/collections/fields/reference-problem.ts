import type { Field, FieldShape } from './field.js';

/**
 * Why the references of a top-level field cannot be kept, as the rest of a sentence about it; null = they can. Checked
 * are a Ref at the top level and the items of a list there: the documents that hold them are found by an index.
 */
export function referenceProblem(field: Field): { rule: 'check' | 'onDelete'; text: string } | null {
  const shape = field.type === 'Array' && field.items ? field.items : field;
  if (partsOf(shape).some(isChecked)) {
    return { rule: 'check', text: 'cannot have check: only a Ref at the top level can, or the items of a list there' };
  }
  if (!shape.check) return null;
  if (shape.ref === undefined) return { rule: 'check', text: 'needs the name of a collection for check: Ref(posts)' };
  if (shape.onDelete !== 'unset') return null;
  if (shape === field && field.required) return { rule: 'onDelete', text: 'is required, so that it cannot be unset' };
  if (field.minItems) return { rule: 'onDelete', text: 'has minItems, so that its items cannot be unset' };
  return null;
}

const partsOf = ({ items, fields = [] }: FieldShape): FieldShape[] => [...(items ? [items] : []), ...fields];

const isChecked = (shape: FieldShape): boolean => Boolean(shape.check) || partsOf(shape).some(isChecked);
