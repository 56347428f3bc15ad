import { defineConfig } from 'vite';

// While the page is developed, Vite serves it and passes on to bsvc what is the service's.
const bsvc = { target: 'http://localhost:4000' };

export default defineConfig({
  server: { port: 5173, strictPort: true, proxy: { '/api': bsvc, '/files': bsvc } },
});
