import type { OperatorTable } from './operator.js';

export const dateOperators: OperatorTable = {};
