/** What the value of a filter is: see `FilterOperator.takes`. */
type Takes = 'ordered' | 'same' | 'list' | 'flag' | 'text' | 'area';

/** Every comparison by the end of its parameter's name: its label in the console's menu, and what its value is. */
export const FILTER_FORMS = {
  '': { label: 'is', takes: 'same' },
  _gt: { label: '>', takes: 'ordered' },
  _gte: { label: '≥', takes: 'ordered' },
  _lt: { label: '<', takes: 'ordered' },
  _lte: { label: '≤', takes: 'ordered' },
  _ne: { label: 'is not', takes: 'same' },
  _in: { label: 'one of', takes: 'list' },
  _exists: { label: 'exists', takes: 'flag' },
  _startswith: { label: 'begins with', takes: 'text' },
  _regex: { label: 'matches', takes: 'text' },
  _near: { label: 'is near', takes: 'area' },
  _within: { label: 'is within', takes: 'area' },
} as const satisfies Readonly<Record<string, { label: string; takes: Takes }>>;

export type FilterSuffix = keyof typeof FILTER_FORMS;
