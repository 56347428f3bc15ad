import type { OperatorTable } from './operator.js';

export const accumulatorExpressions: OperatorTable = {};
