/** What is used of React, which is a peer of the package and has its types apart. */
declare module 'react' {
  export function useMemo<T>(make: () => T, dependencies: readonly unknown[]): T;
  export function useSyncExternalStore<T>(
    subscribe: (listener: () => void) => () => void,
    get: () => T,
    getOnServer: () => T,
  ): T;
}
