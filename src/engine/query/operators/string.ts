import type { OperatorTable } from './operator.js';

export const stringOperators: OperatorTable = {};
