import type { ComponentChildren } from 'preact';
import { kit } from './given.js';

export type { JSX } from 'preact/jsx-runtime';

/** Makes elements by the console's own Preact: what is compiled of JSX in this folder calls it. */
export const jsx = (...element: Parameters<typeof kit.jsx>) => kit.jsx(...element);
export { jsx as jsxs };
export const Fragment = ({ children }: { children?: ComponentChildren }) => children;
