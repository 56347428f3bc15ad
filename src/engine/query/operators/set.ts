import type { OperatorTable } from './operator.js';

export const setOperators: OperatorTable = {};
