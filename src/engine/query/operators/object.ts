import type { OperatorTable } from './operator.js';

export const objectOperators: OperatorTable = {};
