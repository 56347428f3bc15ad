import type { OperatorTable } from './operator.js';

export const arrayOperators: OperatorTable = {};
