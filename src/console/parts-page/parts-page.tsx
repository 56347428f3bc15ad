import type { ComponentType } from 'preact';
import { useEffect, useState } from 'preact/hooks';
import { loadPart } from '../parts/load-part.js';
import { Skeleton } from '../parts/table.js';
import { KIT } from './kit.js';

/** Every part of the console in its states, in both themes; its code is loaded when somebody looks at it. */
export function PartsPage() {
  const [Page, setPage] = useState<ComponentType | null>(null);
  useEffect(() => {
    void loadPart(() => import('./show-parts.js')).then((code) => code && setPage(() => code.makePage(KIT)));
  }, []);
  return Page ? <Page /> : <Skeleton />;
}
