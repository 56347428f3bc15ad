// Made by `npm run docs` from src/features/documents/query/filter-operators.ts.

/** The comparisons of a filter, each with how it is shown. */
export const FILTER_CHOICES: readonly (readonly [operator: string, label: string])[] = [
  ['=', 'is'],
  ['_gt=', '>'],
  ['_gte=', '≥'],
  ['_lt=', '<'],
  ['_lte=', '≤'],
  ['_ne=', 'is not'],
  ['_in=', 'one of'],
  ['_exists=', 'exists'],
  ['_startswith=', 'begins with'],
  ['_regex=', 'matches'],
  ['_near=', 'is near'],
  ['_within=', 'is within'],
];
