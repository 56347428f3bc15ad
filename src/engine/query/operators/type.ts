import type { OperatorTable } from './operator.js';

export const typeOperators: OperatorTable = {};
