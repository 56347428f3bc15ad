// Made by `npm run docs` from src/features/documents/query/filter-operators.ts.

/** The comparisons of a filter, each with how it is shown and what its value is. */
export const FILTER_CHOICES = [
  ['=', 'is', 'same'],
  ['_gt=', '>', 'ordered'],
  ['_gte=', '≥', 'ordered'],
  ['_lt=', '<', 'ordered'],
  ['_lte=', '≤', 'ordered'],
  ['_ne=', 'is not', 'same'],
  ['_in=', 'one of', 'list'],
  ['_exists=', 'exists', 'flag'],
  ['_startswith=', 'begins with', 'text'],
  ['_regex=', 'matches', 'text'],
  ['_near=', 'is near', 'area'],
  ['_within=', 'is within', 'area'],
] as const;
